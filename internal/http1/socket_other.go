//go:build !linux

package http1

import "net"

// Only Linux offers a way to turn clients away before a socket is closed. On other
// systems, connections waiting to be accepted at that moment are lost.

func refuseNew(net.Listener) bool { return false }
func hasQueue(net.Listener) bool  { return false }
func hasUnread(net.Conn) bool     { return false }
func hasLeft(net.Conn) bool       { return false }
