"""The editor's services behind the loop's seams."""
