/* support.h: the five headers below. New code includes the ones it needs. */
#ifndef TA_ANALYSIS_SUPPORT_H
#define TA_ANALYSIS_SUPPORT_H

#include "analysis/analysis_domain.h"
#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/growing_text.h"
#include "analysis/wide.h"

#endif
