// The files that an entry of data.train_files, data.val_files or warm_start.train_files stands for:
// a file, a pattern of names (file_pattern.h), or a folder as data sets lie on the Hugging Face Hub
// (dataset_folder.h). It is settled once, when a job file is read: the effective job lists the
// files, so that a resumed run has the same ones in the same order.
#pragma once

#include <filesystem>
#include <vector>

#include "actors/job/data_split.h"
#include "actors/job/job_faults.h"
#include "actors/job/job_files.h"
#include "actors/job/job_spec.h"
#include "runtime/base/result.h"

namespace tandem::job {

// The entry itself where it is a file, and where nothing is there: whoever opens it says so. An
// error for a pattern that matches nothing, and for a folder whose files leave a choice.
Result<std::vector<std::filesystem::path>> data_files(const std::filesystem::path& entry,
                                                      Split split);

// Puts the files in the place of the entries of `job`'s keys.
void settle_data_files(JobSpec& job, const PositionOf& position_of, JobFaults& faults);

}  // namespace tandem::job
