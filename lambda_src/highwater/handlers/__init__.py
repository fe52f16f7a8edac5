"""Entry points of Lambda functions, one file each: parse, gather, decide, apply, report."""
