"""What is declared for a table: capacity, windows, the high-water mark, and the plan that holds them."""
