/* analysis_domain.h: the domain of what analysis allocates, when the program that asks runs under tracealloc itself. */
#ifndef TA_ANALYSIS_ANALYSIS_DOMAIN_H
#define TA_ANALYSIS_ANALYSIS_DOMAIN_H

/* What this thread allocates until the end of the enclosing block belongs to the domain of analysis. arrays.c and
 * growing_text.c see to it themselves; this is for libraries that allocate on our behalf. */
#define TA__OWN_DOMAIN                                                                                                 \
    __attribute__((cleanup(ta__leave_own_domain), unused)) const int ta__own_domain = ta__enter_own_domain()
int ta__enter_own_domain(void);
void ta__leave_own_domain(const int *entered);

#endif
