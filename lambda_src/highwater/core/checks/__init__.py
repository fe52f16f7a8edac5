"""What is wrong or doubtful about a plan."""
