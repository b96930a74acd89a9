# The warnings and sanitizers that every target of the project is built with.
function(eckart_target_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
    -Wnon-virtual-dtor -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion)
  # With -O3, g++ 12 warns of what can't happen (GCC bug 105651 and its kin); clang has the last word.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-null-dereference;-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
  if(ECKART_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(ECKART_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${ECKART_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${ECKART_SANITIZE})
  endif()
endfunction()
