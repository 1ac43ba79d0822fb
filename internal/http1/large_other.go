//go:build !unix

package http1

import "net"

func writePieces(net.Conn, []byte, func(func())) (int, bool, error) { return 0, false, nil }
