"""The Lambda functions: parse the event, read AWS's state, decide, apply, report."""
