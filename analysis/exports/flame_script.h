/* flame_script.h: the script inside of every flame graph. */
#ifndef TA_ANALYSIS_EXPORTS_FLAME_SCRIPT_H
#define TA_ANALYSIS_EXPORTS_FLAME_SCRIPT_H

extern const char ta__flame_script[];

#endif
