/* plugin.c: a tiny shared object for tests of loading and unloading. Compiled twice, with frames of different size
 * (PLUGIN_FRAME) but instructions of the same length: the two files have the same layout, so that one loaded in place
 * of the other has the same return address at the same address, under another unwind rule. */
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

__asm__(".text\n"
        ".globl plugin_call\n"
        ".type plugin_call, @function\n"
        "plugin_call:\n" /* void plugin_call(void (*callback)(void)) */
        ".cfi_startproc\n"
        "subq $" TEXT(
            PLUGIN_FRAME) ", %rsp\n"
                          ".cfi_adjust_cfa_offset " TEXT(
                              PLUGIN_FRAME) "\n"
                                            "call *%rdi\n"
                                            "addq $" TEXT(
                                                PLUGIN_FRAME) ", %rsp\n"
                                                              ".cfi_adjust_cfa_offset -" TEXT(
                                                                  PLUGIN_FRAME) "\n"
                                                                                "ret\n"
                                                                                ".cfi_endproc\n"
                                                                                ".size plugin_call, . - plugin_call\n"
                                                                                ".section "
                                                                                ".note.GNU-stack,\"\",@progbits\n");
