# UPlot.cmake: the time chart of reports, as one file of JavaScript. Gives TA_UPLOT_FILE. Why this one, and why nothing
# else was taken: docs/decisions/0013-report.md.
include(Fetch)
set(TA_UPLOT_VERSION 1.6.32)

if(TRACEALLOC_UPLOT_SOURCE)
    set(TA_UPLOT_DIR "${TRACEALLOC_UPLOT_SOURCE}")
    ta_check_hashes(trouble "${TA_UPLOT_DIR}" "${TA_FETCH_DIR}/uPlot-${TA_UPLOT_VERSION}.sha256")
    if(NOT trouble STREQUAL "")
        message(FATAL_ERROR "TRACEALLOC_UPLOT_SOURCE is not the dist folder of uPlot ${TA_UPLOT_VERSION}: ${trouble}")
    endif()
else()
    ta_fetch(NAME uPlot VERSION ${TA_UPLOT_VERSION}
        URL "https://github.com/leeoniya/uPlot/archive/refs/tags/${TA_UPLOT_VERSION}.tar.gz" URL_PATH dist
        NPM uplot NPM_PATH package/dist
        PACKAGE appstream-generator SUITES forky sid
        PACKAGE_PATH usr/share/appstream/templates/default/static/js/uplot)
    set(TA_UPLOT_DIR "${TRACEALLOC_DEPS_DIR}/uPlot-${TA_UPLOT_VERSION}")
endif()
set(TA_UPLOT_FILE "${TA_UPLOT_DIR}/uPlot.iife.min.js")
