# What `make install` puts where. broodd looks for brood-zygote beside itself, then in BROOD_LIBEXEC_RELATIVE.
foreach(program brood broodd)
	if(TARGET ${program})
		install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	endif()
endforeach()
if(TARGET brood-zygote)
	install(TARGETS brood-zygote RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/brood)
endif()

foreach(section 1 5 8)
	file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/client/man/*.${section}
	     ${PROJECT_SOURCE_DIR}/supervisor/man/*.${section})
	if(pages)
		install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
	endif()
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/protocol/PROTOCOL.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
