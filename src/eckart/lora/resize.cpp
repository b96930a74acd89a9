#include "eckart/lora/resize.h"

#include "eckart/core/errors.h"
#include "eckart/lora/rewrite_plan.h"

namespace eckart {

RewrittenAdapter resize_adapter(const Adapter& adapter, const std::filesystem::path& target,
                                const RewriteOptions& options) {
  if (!options.budget_bytes) check_rank_rule("resize", options.rule.value_or(RankRule{}));
  return detail::rewrite_adapters("resize", {{&adapter, 1}}, target, options);
}

}  // namespace eckart
