package transcript

import "strconv"

// chains follows the conversations of a Claude Code file: its own session,
// other sessions in it, and the side chains of sub-agents.
type chains struct {
	own string
	// side names the chain of each side-chain record by uuid.
	side map[string]string
}

// see learns the file's own session id from its first record that has one.
func (c *chains) see(o members) string {
	id := o.str("sessionId")
	if c.own == "" {
		c.own = id
	}
	if id == c.own {
		return ""
	}
	return id
}

// sidechain names the chain of a side-chain record: by the agent where the
// record tells it, else by the uuid at which the chain began.
func (c *chains) sidechain(o members, line int) string {
	uuid := o.str("uuid")
	name, known := c.side[o.str("parentUuid")]
	switch {
	case o.str("agentId") != "":
		name = "agent-" + o.str("agentId")
	case known:
	case uuid != "":
		name = "side-" + uuid
	default:
		name = "side-line-" + strconv.Itoa(line)
	}
	if c.side == nil {
		c.side = map[string]string{}
	}
	if uuid != "" {
		c.side[uuid] = name
	}
	return name
}

// claudeMessage reads a user or assistant record. The pieces in which one
// answer was streamed stay messages of their own.
func (rd *reader) claudeMessage(line int, kind string, o members) error {
	rd.is(ClaudeCode)
	e := Entry{
		Session:   rd.claude.see(o),
		ID:        o.str("uuid"),
		ParentID:  o.str("parentUuid"),
		Message:   o.object("message"),
		Kind:      kind,
		Sidechain: o.yes("isSidechain"),
		Line:      line,
		Timestamp: timeOf(o["timestamp"]),
	}
	if e.Message == nil {
		rd.broken(line, "message is not an object")
		return nil
	}
	if e.Sidechain {
		side := rd.claude.sidechain(o, line)
		if e.Session != "" {
			side = e.Session + "/" + side
		}
		e.Session = side
	}
	return rd.emit(e)
}
