# Writes SOURCE as a C array into HEADER.
file(READ ${SOURCE} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${HEADER} "/* Made from brood_worker.py. */\nstatic const unsigned char BROOD_WORKER_SOURCE[] = {${bytes}0};\n")
