"""The declaration for one table: capacity, windows, the high-water mark, and the plan that combines them."""
