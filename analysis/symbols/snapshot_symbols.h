/* snapshot_symbols.h: the symbols of a whole snapshot — between its view, which knows addresses, and the symbolizer. */
#ifndef TA_ANALYSIS_SYMBOLS_SNAPSHOT_SYMBOLS_H
#define TA_ANALYSIS_SYMBOLS_SNAPSHOT_SYMBOLS_H

#include "analysis/symbols/symbols.h"
#include "snapshot/format/view.h"

/* One range per frame of the view, empty for those that are no addresses. */
struct ta__symbolized {
    struct ta__symbolizer *symbolizer;
    struct ta__symbols symbols;
};

/* Looks up every address of the view, each once; reports to the progress function that is set. NULL with the error. */
TA_NODISCARD struct ta__symbolized *ta__symbolize(const struct ta__view *view);
void ta__symbolized_free(struct ta__symbolized *symbolized); /* NULL is allowed */

/* Whether there is anything to look up: addresses, and no symbols stored with the snapshot. */
int ta__needs_symbols(const struct ta__view *view);

#endif
