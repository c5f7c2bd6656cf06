# Warnings, sanitizers, coverage, and the hardening of release builds. Flags that a compiler does not know are left
# out; the test build.hardening reads the result, so that none of those that matter is lost silently.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

# Adds each flag that the compiler takes to the whole build.
function(brood_add_flags)
	foreach(flag IN LISTS ARGN)
		string(MAKE_C_IDENTIFIER "BROOD_HAS${flag}" known)
		set(CMAKE_REQUIRED_FLAGS "-Werror")
		check_c_compiler_flag(${flag} ${known})
		if(${known})
			add_compile_options(${flag})
		endif()
	endforeach()
endfunction()

add_compile_options(-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wformat=2
                    -Wundef)
if(BROOD_WERROR)
	add_compile_options(-Werror)
endif()

# No NDEBUG: a broken invariant of our own aborts in release builds too.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")

if(BROOD_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
		message(FATAL_ERROR "BROOD_FUZZ needs clang (libFuzzer); use the preset fuzz, or set CC=clang")
	endif()
	if(NOT BROOD_SANITIZE)
		set(BROOD_SANITIZE "address,undefined")
	endif()
	# Everything is instrumented; only the fuzz targets link the driver, by ${BROOD_FUZZ_LINK}.
	add_compile_options(-fsanitize=fuzzer-no-link)
	add_link_options(-fsanitize=fuzzer-no-link)
	set(BROOD_FUZZ_LINK -fsanitize=fuzzer)
endif()

set(BROOD_SANITIZED OFF)
if(BROOD_SANITIZE)
	set(BROOD_SANITIZED ON)
	add_compile_definitions(BROOD_SANITIZED=1)
	add_compile_options(-fsanitize=${BROOD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${BROOD_SANITIZE})
endif()

if(BROOD_COVERAGE)
	add_compile_options(--coverage -fprofile-update=atomic)
	add_link_options(--coverage)
endif()

set(BROOD_HARDENED OFF)
if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT BROOD_SANITIZED AND NOT BROOD_COVERAGE)
	set(BROOD_HARDENED ON)
	set(CMAKE_POSITION_INDEPENDENT_CODE ON)
	check_pie_supported(LANGUAGES C)
	brood_add_flags(-fstack-protector-strong -fstack-clash-protection -fcf-protection -fno-plt)
	add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

	# Level 3 asks for both a compiler and a C library that know it; the library warns when it does not.
	set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
	check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" BROOD_HAS_FORTIFY_3)
	unset(CMAKE_REQUIRED_FLAGS)
	if(BROOD_HAS_FORTIFY_3)
		add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
	else()
		add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
	endif()
endif()
