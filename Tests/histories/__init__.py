"""Histories of concurrent operations, and a checker of their linearizability."""
