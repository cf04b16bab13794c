#pragma once

// The control messages (control.proto) by name, for headers that pass them on: the generated header
// takes as long to compile as an average source file.

namespace nacre::control {

class ClaimDatabase;
class Compact;
class CompactionOutcome;
class ConnectedClient;
class Description;
class Directions;
class Extent;
class Flush;
class JobHeader;
class KnownDatabase;
class LogReader;
class Placement;
class Rebuild;
class RebuildOutcome;
class Reply;
class ReportDatabase;
class Request;
class Root;
class Scrub;
class ScrubOutcome;
class Slabs;
class Stats;

}  // namespace nacre::control
