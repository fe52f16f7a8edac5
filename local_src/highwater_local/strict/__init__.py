"""Additional rejections of a strict local cloud: missing permissions, invalid names, and calls above AWS's rates."""
