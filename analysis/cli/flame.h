/* flame.h: what the two files of the flame graph share. */
#ifndef TA_ANALYSIS_CLI_FLAME_H
#define TA_ANALYSIS_CLI_FLAME_H

extern const char cli_flame_script[];

#endif
