"""Calls to AWS that every part of the runtime makes: records that many processes write, and when a call is repeated."""
