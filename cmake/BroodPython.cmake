# The interpreter that belongs to the embedded library, and where its modules lie. `python3` on PATH may be another
# one (pyenv, conda, a virtual environment), so it is looked for where the library's pkg-config file says.
#
# Sets BROOD_PYTHON_VERSION, _PREFIX, _EXECUTABLE, _STDLIB, _PLATSTDLIB (lib-dynload) and _SITE (joined by colons).

if(PYTHON_VERSION VERSION_LESS 3.11)
	message(FATAL_ERROR "Brood embeds Python 3.11 or newer, but ${BROOD_PYTHON_EMBED} is ${PYTHON_VERSION}. "
	        "Name a newer one: -DBROOD_PYTHON_EMBED=python-3.12-embed (needs its development package).")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" BROOD_PYTHON_VERSION "${PYTHON_VERSION}")

pkg_get_variable(python_exec_prefix ${PYTHON_MODULE_NAME} exec_prefix)
set(BROOD_PYTHON_EXECUTABLE ${python_exec_prefix}/bin/python${BROOD_PYTHON_VERSION})
if(NOT EXISTS ${BROOD_PYTHON_EXECUTABLE})
	message(FATAL_ERROR "${BROOD_PYTHON_EXECUTABLE} does not exist, but ${BROOD_PYTHON_EMBED} says that its library "
	        "is there. Install that interpreter, or name another by -DBROOD_PYTHON_EMBED=.")
endif()

# One value a line, in the order in which they are taken below. -I: no variable of the user's has a say.
execute_process(
	COMMAND ${BROOD_PYTHON_EXECUTABLE} -I ${CMAKE_CURRENT_LIST_DIR}/describe_python.py
	OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "\n" ";" described "${described}")
list(LENGTH described lines)
if(failed OR NOT lines EQUAL 8)
	message(FATAL_ERROR "${BROOD_PYTHON_EXECUTABLE} could not say where its modules are (${failed}): ${described}")
endif()
list(GET described 0 described_version)
list(GET described 1 full_version)
list(GET described 2 BROOD_PYTHON_PREFIX)
list(GET described 3 BROOD_PYTHON_STDLIB)
list(GET described 4 BROOD_PYTHON_PLATSTDLIB)
list(GET described 5 BROOD_PYTHON_SITE)
list(GET described 6 static_library)
list(GET described 7 static_libraries)
# An interpreter without any site directory says "-", as an empty line would be lost.
if(BROOD_PYTHON_SITE STREQUAL "-")
	set(BROOD_PYTHON_SITE "")
endif()
if(NOT described_version VERSION_EQUAL BROOD_PYTHON_VERSION)
	message(FATAL_ERROR "${BROOD_PYTHON_EXECUTABLE} is ${full_version}, but ${BROOD_PYTHON_EMBED} is ${PYTHON_VERSION}")
endif()

# The target brood-python: its headers, and the library. As an archive, if it links: the interpreter then lies in brood-zygote itself, whose text can be
# laid into huge pages and is reached without the indirections of a shared library.
add_library(brood-python INTERFACE)
set(BROOD_PYTHON_STATIC OFF)
if(BROOD_STATIC_PYTHON AND NOT static_library STREQUAL "-")
	string(REPLACE ":" ";" static_libraries "${static_libraries}")
	list(REMOVE_ITEM static_libraries "-")
	set(static_link -Wl,--export-dynamic -Wl,--whole-archive ${static_library} -Wl,--no-whole-archive ${static_libraries})
	include(CheckCSourceCompiles)
	set(CMAKE_REQUIRED_INCLUDES ${PYTHON_INCLUDE_DIRS})
	set(CMAKE_REQUIRED_LIBRARIES ${static_link})
	set(CMAKE_REQUIRED_LINK_OPTIONS -pie)
	set(CMAKE_REQUIRED_FLAGS -fPIE)
	check_c_source_compiles("#include <Python.h>
int main(void) { return Py_IsInitialized(); }" BROOD_PYTHON_ARCHIVE_LINKS)
	foreach(name INCLUDES LIBRARIES LINK_OPTIONS FLAGS)
		unset(CMAKE_REQUIRED_${name})
	endforeach()
	set(BROOD_PYTHON_STATIC ${BROOD_PYTHON_ARCHIVE_LINKS})
endif()
target_include_directories(brood-python SYSTEM INTERFACE ${PYTHON_INCLUDE_DIRS})
if(BROOD_PYTHON_STATIC)
	target_link_libraries(brood-python INTERFACE ${static_link})
	set(as "linked statically")
else()
	target_link_libraries(brood-python INTERFACE PkgConfig::PYTHON)
	set(as "as a shared library")
endif()

message(STATUS "Embedding Python ${full_version} (${BROOD_PYTHON_EXECUTABLE}), standard library ${BROOD_PYTHON_STDLIB}, ${as}")
# For the Makefile and scripts, which run their Python with the same interpreter.
file(WRITE ${PROJECT_BINARY_DIR}/generated/python "${BROOD_PYTHON_EXECUTABLE}\n")
