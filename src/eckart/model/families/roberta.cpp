// RoBERTa (arXiv 1907.11692): BERT's encoder; positions begin behind two padding rows.
#include "eckart/model/families/blocks/encoder.h"
#include "eckart/model/families/blocks/heads.h"

namespace eckart {
namespace {

constexpr Index n_padding_positions = 2;

void masked_lm_head(Table& table) {
  square_dense(table, "lm_head.dense", Role::head_dense, Use::per_token);
  table.norm({.name = "lm_head.layer_norm",
              .axis = table.d_model(),
              .bias = true,
              .component = Component::head});
  tied_unembedding(table, {.embedding = "roberta.embeddings.word_embeddings.weight",
                           .decoder = "lm_head.decoder",
                           .bias = "lm_head.bias"});
}

void add_head(Table& table) {
  const Head head = table.head();
  table.begin_head();
  if (table.has_unembedding()) masked_lm_head(table);
  if (head == Head::sequence_classification) {
    square_dense(table, "classifier.dense", Role::head_dense, Use::per_sequence);
    classifier(table, {.name = "classifier.out_proj"});
  }
  if (head == Head::multiple_choice) classifier(table, {.name = "classifier", .n = 1});
  if (head == Head::token_classification) {
    classifier(table, {.name = "classifier", .use = Use::per_token});
  }
  if (head == Head::question_answering) {
    classifier(table, {.name = "qa_outputs", .use = Use::per_token});
  }
}

Architecture read(const Config& config) {
  Table table(config, "roberta");
  table.read_class("RobertaModel");
  read_encoder_sizes(table);
  const Index positions = table.arch.context;
  if (positions <= n_padding_positions) {
    table.fail("max_position_embeddings is " + std::to_string(positions) +
               ", but the first 2 positions are padding");
  }
  table.arch.context = positions - n_padding_positions;

  table.begin_base("roberta.");
  bert_encoder(table);
  if (table.head() == Head::none || table.head() == Head::multiple_choice) bert_pooler(table);
  add_head(table);
  return table.finish();
}

}  // namespace

Family family_roberta() { return {"roberta", {"roberta"}, read}; }

}  // namespace eckart
