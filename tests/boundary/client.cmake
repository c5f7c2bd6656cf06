# The brood command against a scripted broodd.
add_test(NAME boundary.client COMMAND ${BROOD_PYTHON_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/client_test.py
         $<TARGET_FILE:brood>)
# A safety net against a hang, not a mark to reach.
set_tests_properties(boundary.client PROPERTIES TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
