#include "hints.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace eckart::cli {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 13> hints = {{
    {"lstsq gives the closest answer, classify_system says whether there is an exact one",
     "eckart lstsq gives the closest answer, which is exact where its residual_norm is 0"},
    {"lstsq solves systems of any shape", "eckart lstsq solves systems of any shape"},
    {"without the kind it takes any square matrix", "without --kind it takes any square matrix"},
    {"svd takes matrices of any shape", "eckart svd takes matrices of any shape"},
    {"eig takes any square matrix; (a + a^T) / 2 is the symmetric part of a",
     "eckart svd takes any matrix; (a + a^T) / 2 is the symmetric part of a"},
    {"with a smaller k it fits", "with a smaller --k it fits"},
    {"low_rank takes matrices of any size", "eckart lowrank takes matrices of any size"},
    {"method = qr_iteration takes it, svd_values gives the values alone, and low_rank the largest "
     "values with their vectors",
     "--values gives the values alone, eckart lowrank the largest values with their vectors"},
    {"ask for 0 or NaN in its place with zero_vector",
     "--zero zero gives 0 in its place, --zero nan gives NaN"},
    {"multiply scales each element of an array by a number", ""},
    {"leave k out for all of them", "leave -k out for all of them"},
    {"set truncate to embed its beginning", "with --truncate its beginning is embedded"},
    {"solver = covariance needs none", "--solver covariance needs none"},
}};

constexpr std::array<Pair, 7> operations = {{
    {"low_rank", "lowrank"},
    {"matrix_rank", "rank"},
    {"svd_values", "svd"},
    {"vector_norms", "norm"},
    {"cosine_similarity", "cosine"},
    {"cosine_similarities", "cosine"},
    {"ridge_cv", "ridge"},
}};

}  // namespace

std::string command_hint(const std::string& hint) {
  const auto* const found = std::find_if(hints.begin(), hints.end(),
                                         [&](const Pair& pair) { return pair.first == hint; });
  return found == hints.end() ? hint : std::string(found->second);
}

std::string command_message(const std::string& message) {
  const std::size_t colon = message.find(':');
  const std::string_view operation = std::string_view(message).substr(0, colon);
  const auto* const found = std::find_if(operations.begin(), operations.end(),
                                         [&](const Pair& pair) { return pair.first == operation; });
  return found == operations.end() ? message : std::string(found->second) + message.substr(colon);
}

}  // namespace eckart::cli
