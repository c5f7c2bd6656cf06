# The libraries, as imported targets PkgConfig::NAME. All of them are missing at once or none, so all are named at once.
find_package(PkgConfig REQUIRED)

set(missing "")

# brood_find(NAME PACKAGE MODULE...): the first of the pkg-config modules that exists becomes PkgConfig::NAME.
macro(brood_find name package)
	pkg_search_module(${name} QUIET IMPORTED_TARGET GLOBAL ${ARGN})
	if(${name}_FOUND)
		message(STATUS "Using ${${name}_MODULE_NAME} ${${name}_VERSION}")
	else()
		string(REPLACE ";" " or " wanted "${ARGN}")
		list(APPEND missing "  ${wanted} (Debian: ${package})")
	endif()
endmacro()

brood_find(MSGPACK libmsgpack-dev "msgpack>=3.1" "msgpack-c>=3.1")
brood_find(EVENT libevent-dev "libevent_core>=2.1" "libevent>=2.1")
brood_find(SECCOMP libseccomp-dev "libseccomp>=2.5")
brood_find(INIH libinih-dev inih)
brood_find(JANSSON libjansson-dev "jansson>=2.13")
brood_find(PYTHON python3-dev ${BROOD_PYTHON_EMBED})
if(BROOD_TESTS)
	brood_find(CMOCKA libcmocka-dev cmocka)
endif()

if(missing)
	string(REPLACE ";" "\n" missing "${missing}")
	message(FATAL_ERROR "pkg-config does not find:\n${missing}\n'make deps' installs what is needed on Debian.")
endif()
