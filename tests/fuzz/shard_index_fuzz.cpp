// Any bytes as an index: no refused name gets through.
#include "eckart/io/findings.h"
#include "eckart/io/shard_index.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <string>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  eckart::Findings findings;
  const eckart::ShardIndex index = eckart::read_shard_index(
      std::as_bytes(std::span(data, size)), "/nowhere/model.safetensors.index.json", findings);
  for (const std::string& shard : index.shards) {
    require(shard.ends_with(".safetensors"));
    require(shard.find_first_of(std::string("/\\:\0", 4)) == std::string::npos);
    require(shard.find("..") == std::string::npos);
  }
  std::set<std::string> names;
  for (const eckart::ShardIndex::Entry& entry : index.entries) {
    require(entry.shard < index.shards.size());
    require(names.insert(entry.tensor).second);
  }
  for (const eckart::Finding& finding : findings.all()) {
    require(!finding.rule.empty() && !finding.message.empty());
    require(finding.message == eckart::printable_path(finding.message));
  }
  return 0;
}
