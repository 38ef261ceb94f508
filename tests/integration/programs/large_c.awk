# large_c.awk: writes a C file of many functions that differ; -v functions=N says how many.
BEGIN {
    print "struct node { struct node *next; int value; double weight; char text[24]; };"
    for (i = 0; i < functions; i++) {
        printf "static int table%d[] = {%d, %d, %d, %d};\n", i, i, i * 3, i * 7 % 11, i % 5
        printf "int function%d(struct node *list, int argument)\n{\n    int sum = %d;\n", i, i
        printf "    for (struct node *n = list; n != 0; n = n->next) {\n"
        printf "        if (n->value %% %d == %d)\n            sum += n->value * table%d[argument & 3];\n", i % 13 + 2, i % 2, i
        printf "        else if (n->text[%d] == '%c')\n            sum ^= (int)(n->weight * %d.5);\n", i % 24, 97 + i % 26, i
        printf "        switch (argument + n->value) {\n"
        for (k = 0; k < 6; k++)
            printf "        case %d: sum += %s; break;\n", k * (i % 9 + 1), i > 6 && k < 5 ? "function" (i - k - 1) "(n->next, argument - 1)" : k
        print "        default: break;\n        }\n    }\n    return sum;\n}"
    }
}
