# Unit tests of what all processes share.
brood_unit_test(protocol_scan SOURCES test_protocol_scan.c LIBS brood-protocol)
brood_unit_test(protocol_reader SOURCES test_protocol_reader.c LIBS brood-protocol)
brood_unit_test(protocol_control SOURCES test_protocol_control.c LIBS brood-protocol)
brood_unit_test(protocol_fields SOURCES test_protocol_fields.c LIBS brood-protocol)
brood_unit_test(protocol_result SOURCES test_protocol_result.c LIBS brood-protocol)
brood_unit_test(protocol_text SOURCES test_protocol_text.c LIBS brood-protocol)
