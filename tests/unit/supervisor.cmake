# Unit tests of the supervisor's pure parts.
brood_unit_test(supervisor_queue SOURCES test_supervisor_queue.c LIBS brood-supervisor)
brood_unit_test(supervisor_pool SOURCES test_supervisor_pool.c LIBS brood-supervisor)
brood_unit_test(supervisor_output SOURCES test_supervisor_output.c LIBS brood-supervisor)
brood_unit_test(supervisor_config SOURCES test_supervisor_config.c LIBS brood-supervisor)
brood_unit_test(supervisor_rpc SOURCES test_supervisor_rpc.c LIBS brood-supervisor)
