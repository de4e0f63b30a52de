"""Stand-ins for the edges of the house: real enough to be trusted, small enough to be read. No mocks."""
