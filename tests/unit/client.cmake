# Unit tests of the command's pure parts.
foreach(part json bigint options answer)
	brood_unit_test(client_${part} SOURCES test_client_${part}.c LIBS brood-client)
endforeach()
