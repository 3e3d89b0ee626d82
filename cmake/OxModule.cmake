# Modules, their tests, generated sources and fuzz binaries. One call per folder:
#
#   ox_module(NAME ledger/store        # the folder below src/; the library is ox_ledger_store
#             LEVEL 3                  # see ARCHITECTURE.md; USES must name lower levels (or the parent folder)
#             USES base io ledger      # modules this one includes
#             SOURCES a.c b.c
#             TESTS a_test.c b_test.c  # one executable and one CTest test unit.<module>.<file> each
#             TEST_USES sim            # modules only the tests include; any level
#             TEST_SOURCES fixture.c   # linked into every test of the folder
#             PACKAGES lmdb zlib       # names from OxPackages.cmake
#             MAIN main.c              # optional: also a program ...
#             OUTPUT oxsim             # ... of this name (default: the folder's name)
#             KIND library|program)    # program: MAIN defaults to main.c
#
#   ox_proto(ox_wire spec/proto/x.proto)     # #include "proto/x.pb-c.h"
#   ox_generate(ox_base SCRIPT tools/gen.py INPUT spec/config.json OUTPUTS config_keys.h config_keys.c)
#                                            # runs: python3 SCRIPT INPUT OUT-FOLDER; #include "gen/config_keys.h"
#   ox_test(NAME sim.seeds COMMAND oxsim --seeds 10 LABELS release TIMEOUT 200)
#   ox_fuzz(NAME frames SOURCE frames_fuzz.c USES wire)
#
# Edges are checked, tests made and build/modules.json is written at the end of the top file by ox_finish().
set(OX_GEN ${CMAKE_BINARY_DIR}/generated)
set(OX_TEST_ENVIRONMENT
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1")

function(ox_target_name out module)
    string(REPLACE "/" "_" flat "${module}")
    set(${out} ox_${flat} PARENT_SCOPE)
endfunction()

function(ox_module)
    cmake_parse_arguments(M "" "NAME;LEVEL;KIND;MAIN;OUTPUT;TEST_TIMEOUT"
        "USES;SOURCES;TESTS;TEST_USES;TEST_SOURCES;PACKAGES" ${ARGN})
    if(M_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "ox_module(${M_NAME}): unknown arguments: ${M_UNPARSED_ARGUMENTS}")
    endif()
    if("${M_LEVEL}" STREQUAL "")
        message(FATAL_ERROR "ox_module(${M_NAME}): LEVEL is missing")
    endif()
    ox_target_name(target ${M_NAME})
    if(M_KIND STREQUAL "program" AND NOT M_MAIN)
        set(M_MAIN main.c)
    endif()
    list(REMOVE_ITEM M_SOURCES "" ${M_MAIN})
    ox_bringup_existing(M_SOURCES)
    ox_bringup_existing(M_TESTS)
    ox_bringup_existing(M_TEST_SOURCES)

    ox_add_library(${target} "${M_SOURCES}" "${M_USES}" "${M_PACKAGES}")
    if(M_MAIN)
        ox_add_program(${target} ${M_NAME} ${M_MAIN} "${M_OUTPUT}")
    endif()

    set_property(GLOBAL APPEND PROPERTY OX_MODULES ${M_NAME})
    foreach(field LEVEL USES TESTS TEST_USES TEST_SOURCES TEST_TIMEOUT PACKAGES)
        set_property(GLOBAL PROPERTY OX_${M_NAME}_${field} "${M_${field}}")
    endforeach()
    set_property(GLOBAL PROPERTY OX_${M_NAME}_FOLDER ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# bring-up: leaves out files that are not written yet
function(ox_bringup_existing var)
    set(found "")
    foreach(file ${${var}})
        if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
            list(APPEND found ${file})
        else()
            message(STATUS "bring-up: ${CMAKE_CURRENT_SOURCE_DIR}/${file} is not there yet, left out (re-run cmake when it is)")
        endif()
    endforeach()
    set(${var} ${found} PARENT_SCOPE)
endfunction()

function(ox_add_library target sources uses packages)
    set(visibility PUBLIC)
    if(sources)
        add_library(${target} STATIC ${sources})
        target_link_libraries(${target} PRIVATE ox_strict)
    else()
        add_library(${target} INTERFACE)
        set(visibility INTERFACE)
    endif()
    target_include_directories(${target} ${visibility} ${CMAKE_SOURCE_DIR}/src)
    target_include_directories(${target} SYSTEM ${visibility} ${OX_GEN})
    foreach(use ${uses})
        ox_target_name(used ${use})
        target_link_libraries(${target} ${visibility} ${used})
    endforeach()
    foreach(package ${packages})
        if(NOT TARGET ox_pkg_${package})
            message(FATAL_ERROR "${target}: package '${package}' is not listed in cmake/OxPackages.cmake")
        endif()
        target_link_libraries(${target} ${visibility} ox_pkg_${package})
    endforeach()
endfunction()

function(ox_add_program target module main output)
    if(NOT output)
        get_filename_component(output ${module} NAME)
    endif()
    add_executable(${output} ${main})
    target_link_libraries(${output} PRIVATE ${target} ox_strict)
endfunction()

# Writes nothing into the source tree: the generated code is a library of its own, compiled without our warnings.
function(ox_proto target proto)
    get_filename_component(name ${proto} NAME_WE)
    get_filename_component(folder ${CMAKE_SOURCE_DIR}/${proto} DIRECTORY)
    find_program(OX_PROTOC_C protoc-c REQUIRED)
    set(out ${OX_GEN}/proto)
    file(MAKE_DIRECTORY ${out})
    add_custom_command(OUTPUT ${out}/${name}.pb-c.c ${out}/${name}.pb-c.h
        COMMAND ${OX_PROTOC_C} --proto_path=${folder} --c_out=${out} ${CMAKE_SOURCE_DIR}/${proto}
        DEPENDS ${CMAKE_SOURCE_DIR}/${proto} COMMENT "protoc-c ${proto}" VERBATIM)
    add_library(${target}_${name}_proto STATIC ${out}/${name}.pb-c.c ${out}/${name}.pb-c.h)
    target_include_directories(${target}_${name}_proto SYSTEM PUBLIC ${OX_GEN} ${out})
    target_link_libraries(${target}_${name}_proto PUBLIC ox_pkg_protobuf-c)
    target_compile_options(${target}_${name}_proto PRIVATE -w)
    ox_link_generated(${target} ${target}_${name}_proto)
endfunction()

function(ox_generate target)
    cmake_parse_arguments(G "" "SCRIPT;INPUT" "OUTPUTS;DEPENDS" ${ARGN})
    find_program(OX_PYTHON python3 REQUIRED)
    set(out ${OX_GEN}/gen)
    file(MAKE_DIRECTORY ${out})
    list(TRANSFORM G_OUTPUTS PREPEND ${out}/)
    list(TRANSFORM G_DEPENDS PREPEND ${CMAKE_SOURCE_DIR}/)
    add_custom_command(OUTPUT ${G_OUTPUTS}
        COMMAND ${OX_PYTHON} ${CMAKE_SOURCE_DIR}/${G_SCRIPT} ${CMAKE_SOURCE_DIR}/${G_INPUT} ${out}
        DEPENDS ${CMAKE_SOURCE_DIR}/${G_SCRIPT} ${CMAKE_SOURCE_DIR}/${G_INPUT} ${G_DEPENDS}
        COMMENT "${G_SCRIPT} ${G_INPUT}" VERBATIM)
    get_filename_component(name ${G_INPUT} NAME_WE)
    add_custom_target(${target}_${name}_generated DEPENDS ${G_OUTPUTS})
    add_dependencies(${target} ${target}_${name}_generated)
    list(FILTER G_OUTPUTS INCLUDE REGEX "\\.c$")
    if(G_OUTPUTS)
        target_sources(${target} PRIVATE ${G_OUTPUTS})
    endif()
endfunction()

function(ox_link_generated target generated)
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "INTERFACE_LIBRARY")
        target_link_libraries(${target} INTERFACE ${generated})
    else()
        target_link_libraries(${target} PUBLIC ${generated})
    endif()
endfunction()

# A CTest test in a folder of its own, so that files left by one test never meet another's.
# A test with the label `release` measures or runs long: only a Release build without instrumentation registers it.
function(ox_test)
    cmake_parse_arguments(T "SERIAL" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
    if("release" IN_LIST T_LABELS AND NOT OX_PLAIN_RELEASE)
        return()
    endif()
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 120)
    endif()
    set(run ${CMAKE_BINARY_DIR}/tests/run/${T_NAME})
    file(MAKE_DIRECTORY ${run})
    add_test(NAME ${T_NAME} COMMAND ${T_COMMAND} WORKING_DIRECTORY ${run})
    set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
        ENVIRONMENT "${OX_TEST_ENVIRONMENT};${T_ENVIRONMENT}")
    if(T_SERIAL)
        set_tests_properties(${T_NAME} PROPERTIES RUN_SERIAL TRUE)
    endif()
endfunction()

# With OX_FUZZ a libFuzzer binary; otherwise a program that runs the kept corpus once.
function(ox_fuzz)
    cmake_parse_arguments(F "" "NAME;SOURCE" "USES" ${ARGN})
    if(NOT OX_FUZZ AND NOT OX_UNIT_TESTS)
        return()
    endif()
    set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${F_NAME})
    set(target fuzz_${F_NAME})
    add_executable(${target} ${F_SOURCE})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests/fuzz)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${target} PRIVATE ox_strict)
    foreach(use ${F_USES})
        ox_target_name(used ${use})
        target_link_libraries(${target} PRIVATE ${used})
    endforeach()
    if(OX_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        set_property(GLOBAL APPEND PROPERTY OX_FUZZERS ${F_NAME})
    else()
        target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
        ox_test(NAME corpus.${F_NAME} LABELS unit COMMAND ${target} ${corpus})
    endif()
endfunction()

# Shares OX_FUZZ_SECONDS out between the fuzz binaries.
function(ox_add_fuzz_tests)
    get_property(names GLOBAL PROPERTY OX_FUZZERS)
    list(LENGTH names count)
    if(count EQUAL 0)
        return()
    endif()
    list(TRANSFORM names PREPEND fuzz_ OUTPUT_VARIABLE targets)
    add_custom_target(fuzzers DEPENDS ${targets})
    math(EXPR seconds "(${OX_FUZZ_SECONDS} + ${count} - 1) / ${count}")
    math(EXPR timeout "${seconds} + 120")
    foreach(name ${names})
        file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/corpus/${name} ${CMAKE_BINARY_DIR}/findings)
        ox_test(NAME fuzz.${name} LABELS fuzz TIMEOUT ${timeout}
            COMMAND fuzz_${name} -max_total_time=${seconds} -timeout=20 -rss_limit_mb=1024 -max_len=65536 -verbosity=0
            -artifact_prefix=${CMAKE_BINARY_DIR}/findings/${name}-
            ${CMAKE_BINARY_DIR}/corpus/${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    endforeach()
endfunction()

function(ox_finish)
    get_property(modules GLOBAL PROPERTY OX_MODULES)
    foreach(module ${modules})
        ox_check_edges(${module})
        if(OX_UNIT_TESTS AND NOT OX_FUZZ)
            ox_add_tests(${module})
        endif()
    endforeach()
    ox_add_fuzz_tests()
    ox_write_modules("${modules}")
endfunction()

function(ox_check_edges module)
    get_property(modules GLOBAL PROPERTY OX_MODULES)
    get_property(level GLOBAL PROPERTY OX_${module}_LEVEL)
    get_property(uses GLOBAL PROPERTY OX_${module}_USES)
    foreach(use ${uses})
        if(NOT use IN_LIST modules)
            if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${use}/CMakeLists.txt) # bring-up
                message(STATUS "bring-up: module ${module} USES ${use}, which is not there yet") # bring-up
                continue() # bring-up
            endif() # bring-up
            message(FATAL_ERROR "Module ${module} USES ${use}, and there is no module of that name")
        endif()
        get_property(used_level GLOBAL PROPERTY OX_${use}_LEVEL)
        string(FIND "${module}" "${use}/" inside)
        if(used_level LESS level OR (used_level EQUAL level AND inside EQUAL 0))
            continue()
        endif()
        message(FATAL_ERROR "Module ${module} (level ${level}) USES ${use} (level ${used_level}): arrows point down only. "
            "Let the lower module declare an interface and the program connect the two.")
    endforeach()
endfunction()

function(ox_add_tests module)
    foreach(field FOLDER TESTS TEST_USES TEST_SOURCES TEST_TIMEOUT)
        get_property(${field} GLOBAL PROPERTY OX_${module}_${field})
    endforeach()
    list(TRANSFORM TEST_SOURCES PREPEND ${FOLDER}/)
    foreach(test ${TESTS})
        get_filename_component(file ${test} NAME_WE)
        string(REGEX REPLACE "_test$" "" file ${file})
        ox_target_name(library ${module})
        string(REGEX REPLACE "^ox_" "test_" target ${library}_${file})
        add_executable(${target} ${FOLDER}/${test} ${TEST_SOURCES})
        set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        target_compile_definitions(${target} PRIVATE OX_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
        foreach(use ${TEST_USES})
            ox_target_name(used ${use})
            target_link_libraries(${target} PRIVATE ${used})
        endforeach()
        target_link_libraries(${target} PRIVATE ${library} ox_strict ox_pkg_cmocka)
        string(REPLACE "/" "." dotted ${module})
        ox_test(NAME unit.${dotted}.${file} LABELS unit TIMEOUT "${TEST_TIMEOUT}" COMMAND ${target})
    endforeach()
endfunction()

function(ox_json_list out)
    list(TRANSFORM ARGN REPLACE "(.+)" "\"\\1\"")
    list(JOIN ARGN ", " joined)
    set(${out} "[${joined}]" PARENT_SCOPE)
endfunction()

function(ox_write_modules modules)
    set(rows "")
    foreach(module ${modules})
        get_property(level GLOBAL PROPERTY OX_${module}_LEVEL)
        foreach(field USES TEST_USES PACKAGES TESTS TEST_SOURCES)
            get_property(values GLOBAL PROPERTY OX_${module}_${field})
            ox_json_list(${field} ${values})
        endforeach()
        list(APPEND rows
            "  \"${module}\": {\"level\": ${level}, \"uses\": ${USES}, \"test_uses\": ${TEST_USES}, \"packages\": ${PACKAGES},\n    \"tests\": ${TESTS}, \"test_sources\": ${TEST_SOURCES}}")
    endforeach()
    list(JOIN rows ",\n" text)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/modules.json CONTENT "{\n${text}\n}\n" @ONLY)
endfunction()
