#pragma once

namespace nacre::sharding {

// Those messages of member_request.proto that interfaces pass on without looking into them: the
// generated header is a second's work for the compiler.
class ControlReply;
class ControlRequest;
class MemberReply;
class MemberRequest;

}  // namespace nacre::sharding
