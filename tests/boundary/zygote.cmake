# brood-zygote against a scripted supervisor, and its parts that need a namespace to be tried.
add_executable(zygote_spawn zygote_spawn.c)
add_test(NAME boundary.zygote COMMAND ${BROOD_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/zygote_test.py
         $<TARGET_FILE:brood-zygote> $<TARGET_FILE:zygote_spawn>)
if(BROOD_SANITIZED)
	set_tests_properties(boundary.zygote PROPERTIES ENVIRONMENT BROOD_TEST_NO_FILTER=1)
endif()

add_executable(zygote_mounts_test zygote_mounts_test.c ${PROJECT_SOURCE_DIR}/zygote/mounts.c
               ${PROJECT_SOURCE_DIR}/zygote/proc.c)
add_test(NAME boundary.zygote_mounts COMMAND zygote_mounts_test)
set_tests_properties(boundary.zygote_mounts PROPERTIES SKIP_RETURN_CODE 77)
