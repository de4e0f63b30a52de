"""Between ACP and the loop: one connection, a record per session, what goes out live and on replay."""
