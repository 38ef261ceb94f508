/* end_text.c: see end_text.h. Runs in the process and in its keeper: no malloc, no stdio. */
#include "snapshot/triggers/end_text.h"

#include <string.h>

#include "base/bytes.h"

void ta__signal_text(char text[16], int number)
{
    static const char names[][7] = {"0",      "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
                                    "FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
                                    "STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
                                    "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
    memcpy(text, "SIG", 4);
    if (number >= 0 && number < (int)(sizeof names / sizeof *names))
        strcpy(text + 3, names[number]);
    else
        ta__put_decimal(text + 3, (uint64_t)(unsigned)number);
}

void ta__end_text(char text[16], int end)
{
    enum { SIGNAL = 0x7f, STATUS_AT = 8 };
    *text = '\0';
    if (end < 0)
        return;
    if ((end & SIGNAL) != 0)
        ta__signal_text(text, end & SIGNAL);
    else
        ta__put_decimal(text, (uint64_t)(unsigned)end >> STATUS_AT & 0xff);
}
