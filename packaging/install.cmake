# Installs all but the programs, at `cmake --install` and inside CPack. Set before: source, build, CMAKE_INSTALL_PREFIX.
# Below /usr things lie where Debian's packages have them; below another prefix everything stays inside the prefix.
set(share ${CMAKE_INSTALL_PREFIX}/share)
set(doc ${share}/doc/oxbow)
set(bindir ${CMAKE_INSTALL_PREFIX}/bin)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(etcdir /etc/oxbow)
    set(unitdir /lib/systemd/system)
    set(zshdir ${share}/zsh/vendor-completions)
else()
    set(etcdir ${CMAKE_INSTALL_PREFIX}/etc/oxbow)
    set(unitdir ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
    set(zshdir ${share}/zsh/site-functions)
endif()
# A folder of its own for each run: two may happen at once.
string(RANDOM LENGTH 12 run)
set(made ${build}/packaging/made-${run})
file(MAKE_DIRECTORY ${made})

# put(FOLDER FILE...): as they are, readable by all.
function(put folder)
    file(INSTALL ${ARGN} DESTINATION ${folder} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} PARENT_SCOPE)
endfunction()

# squeeze(FILE NAME): NAME.gz below `made`, the same bytes for the same file.
function(squeeze file name)
    execute_process(COMMAND gzip -9nc ${file} OUTPUT_FILE ${made}/${name}.gz COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# put_manual(FILE)
function(put_manual file)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE ".*\\." "" section ${name})
    squeeze(${file} ${name})
    put(${share}/man/man${section} ${made}/${name}.gz)
    set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} PARENT_SCOPE)
endfunction()

foreach(page ${source}/packaging/man/oxbowd.8 ${source}/packaging/man/oxbow-bench.1 ${source}/packaging/man/oxbow-inspect.1
        ${build}/man/oxbowctl.1 ${build}/man/oxbowd.conf.5)
    put_manual(${page})
endforeach()

file(COPY_FILE ${build}/completion/oxbowctl.bash ${made}/oxbowctl)
put(${share}/bash-completion/completions ${made}/oxbowctl)
put(${zshdir} ${build}/completion/_oxbowctl)
put(${share}/fish/vendor_completions.d ${build}/completion/oxbowctl.fish)

configure_file(${source}/packaging/systemd/oxbowd.service.in ${made}/oxbowd.service @ONLY)
put(${unitdir} ${made}/oxbowd.service)

put(${doc} ${source}/README.md)
file(GLOB documents ${source}/docs/*.md)
put(${doc}/docs ${documents})

# The configuration is the operator's: one that is there stays, and what it began as lies in share for comparison.
put(${share}/oxbow ${build}/oxbowd.conf)
if(NOT EXISTS $ENV{DESTDIR}${etcdir}/oxbowd.conf)
    file(INSTALL ${build}/oxbowd.conf DESTINATION ${etcdir} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
else()
    list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${etcdir}/oxbowd.conf)
endif()

if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    squeeze(${source}/packaging/deb/changelog changelog)
    file(COPY_FILE ${source}/packaging/deb/lintian-overrides ${made}/oxbow)
    put(${doc} ${source}/packaging/deb/copyright ${made}/changelog.gz)
    put(${share}/lintian/overrides ${made}/oxbow)
else()
    file(COPY_FILE ${source}/packaging/systemd/oxbow.sysusers ${made}/oxbow.conf)
    put(${doc} ${source}/LICENSE)
    put(${CMAKE_INSTALL_PREFIX}/lib/sysusers.d ${made}/oxbow.conf)
    # `make uninstall` removes what this list names.
    list(JOIN CMAKE_INSTALL_MANIFEST_FILES "\n" installed)
    file(WRITE ${made}/installed "${installed}\n${share}/oxbow/installed\n")
    put(${share}/oxbow ${made}/installed)
endif()
file(REMOVE_RECURSE ${made})
