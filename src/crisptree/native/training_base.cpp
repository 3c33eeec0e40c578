// Training compiled for the base instruction set: what every machine of the kind has.

#include "training.inc"

namespace crisptree {
const TrainingKernels base_training = kTraining;
}

