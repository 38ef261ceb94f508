/* end_text.h: how a process ended, in a word. */
#ifndef TA_SNAPSHOT_TRIGGERS_END_TEXT_H
#define TA_SNAPSHOT_TRIGGERS_END_TEXT_H

/* "SIGTERM"; "SIG35" for one without a name. */
void ta__signal_text(char text[16], int number);
/* "3" or "SIGTERM" for what wait tells; "" for -1: that is not known. */
void ta__end_text(char text[16], int end);

#endif
