// The values of all commands while one command line is parsed: the parser writes options and
// arguments into the struct of the command that it meets. The others keep their defaults.
#pragma once

#include "actors/cli/command.h"

namespace tandem::cli {

struct CommandValues {
  RunCommand run;
  UpCommand up;
  ControllerCommand controller;
  NodeCommand node;
  SubmitCommand submit;
  GetCommand get;
  DescribeCommand describe;
  WhyCommand why;
  ScaleCommand scale;
  AskCommand ask;
  LogsCommand logs;
  EventsCommand events;
  CancelCommand cancel;
  DeleteCommand remove;
  StatusCommand status;
  SamplesCommand samples;
  TopCommand top;
  DashboardCommand dashboard;
  WaitCommand wait;
  ExplainCommand explain;
  GenerateCommand generate;
  EvalCommand eval;
  TokenizeCommand tokenize;
  DoctorCommand doctor;
  VersionCommand version;
  CompletionCommand completion;
};

}  // namespace tandem::cli
