// BERT (arXiv 1810.04805), and sentence encoders of its shape.
#include "eckart/model/families/blocks/encoder.h"
#include "eckart/model/families/blocks/heads.h"

namespace eckart {
namespace {

bool has_pooler(Head head) {
  return head == Head::none || head == Head::pretraining || head == Head::next_sentence ||
         head == Head::sequence_classification || head == Head::multiple_choice;
}

void masked_lm_head(Table& table) {
  square_dense(table, "cls.predictions.transform.dense", Role::head_dense, Use::per_token);
  table.norm({.name = "cls.predictions.transform.LayerNorm",
              .axis = table.d_model(),
              .bias = true,
              .component = Component::head,
              .old_names = true});
  tied_unembedding(table, {.embedding = "bert.embeddings.word_embeddings.weight",
                           .decoder = "cls.predictions.decoder",
                           .bias = "cls.predictions.bias"});
}

void add_head(Table& table) {
  const Head head = table.head();
  table.begin_head();
  if (table.has_unembedding()) masked_lm_head(table);
  if (head == Head::pretraining || head == Head::next_sentence) {
    classifier(table, {.name = "cls.seq_relationship", .n = 2});
  }
  if (head == Head::sequence_classification) classifier(table, {.name = "classifier"});
  if (head == Head::multiple_choice) classifier(table, {.name = "classifier", .n = 1});
  if (head == Head::token_classification) {
    classifier(table, {.name = "classifier", .use = Use::per_token});
  }
  if (head == Head::question_answering) {
    classifier(table, {.name = "qa_outputs", .use = Use::per_token});
  }
}

Architecture read(const Config& config) {
  Table table(config, "bert");
  table.read_class("BertModel");
  read_encoder_sizes(table);

  table.begin_base("bert.");
  bert_encoder(table);
  if (has_pooler(table.head())) bert_pooler(table);
  add_head(table);
  return table.finish();
}

}  // namespace

Family family_bert() { return {"bert", {"bert"}, read}; }

}  // namespace eckart
