"""The specification: tests that mirror the two packages, goldens, doubles and the rules of the house."""
