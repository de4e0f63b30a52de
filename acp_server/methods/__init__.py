"""One short file per ACP method; `table` lists them under the protocol's own words."""
