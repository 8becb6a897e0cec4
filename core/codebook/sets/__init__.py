"""Class sets that ship, a file each: `CLASS_SET` says all that the program knows of one."""
