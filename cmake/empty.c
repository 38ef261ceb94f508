/* empty.c: a target of CMake must have a source; the products are made of the modules' objects. Holds nothing. */
typedef int ta_nothing_here;
