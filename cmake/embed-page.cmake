# embed-page.cmake: a page and what it is made of become C.
#
#   cmake -DPAGE=page.html -DCHART=uPlot.js -DLICENSE=license.txt -DSTYLES=a.css;… -DSCRIPTS=a.js;… -DOUT=page.c -P embed-page.cmake
#
# In the page @STYLES@, @CHART@, @LICENSE@ and @SCRIPTS@ stand for the files' contents; it is cut at @TITLE@ and @DATA@.
file(READ "${PAGE}" page)
function(embed mark)
    set(text "")
    foreach(file IN LISTS ARGN)
        file(READ "${file}" piece)
        string(APPEND text "${piece}")
    endforeach()
    string(REPLACE "@${mark}@" "${text}" page "${page}")
    set(page "${page}" PARENT_SCOPE)
endfunction()
embed(STYLES ${STYLES})
embed(CHART "${CHART}")
embed(LICENSE "${LICENSE}")
embed(SCRIPTS ${SCRIPTS})

string(FIND "${page}" "@TITLE@" title)
string(FIND "${page}" "@DATA@" data)
math(EXPR behind_title "${title} + 7")
math(EXPR behind_data "${data} + 6")
math(EXPR between "${data} - ${behind_title}")
string(SUBSTRING "${page}" 0 ${title} head)
string(SUBSTRING "${page}" ${behind_title} ${between} middle)
string(SUBSTRING "${page}" ${behind_data} -1 end)

set(code "/* Made by cmake/embed-page.cmake. */\n#include \"analysis/report/page.h\"\n")
foreach(part IN ITEMS head middle end)
    string(HEX "${${part}}" bytes)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND code "const unsigned char ta__page_${part}[] = {${bytes}};\n"
        "const size_t ta__page_${part}_size = sizeof ta__page_${part};\n")
endforeach()
file(WRITE "${OUT}" "${code}")
