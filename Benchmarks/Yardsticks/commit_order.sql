-- The log of events as the service stores it, and a table for the work that an event reports; for
-- commit_order_*.pgbench.
DROP SCHEMA IF EXISTS commit_order CASCADE;
CREATE SCHEMA commit_order;
SET search_path = commit_order;

CREATE TABLE work (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, text text NOT NULL);
CREATE TABLE event_counter (newest bigint NOT NULL);
INSERT INTO event_counter VALUES (0);
CREATE SEQUENCE event_sequence;
CREATE TABLE events (
    sequence bigint PRIMARY KEY,
    tenant text NOT NULL,
    name text NOT NULL,
    topic text,
    audience text NOT NULL,
    collapse bigint NOT NULL,
    data text NOT NULL,
    created_at bigint NOT NULL,
    xid xid8
);
CREATE TABLE event_routes (
    tenant text NOT NULL,
    route text NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (tenant, route, sequence)
);
-- The reader of the horizon method searches by transaction. The other methods leave the column empty and pay nothing
-- for it.
CREATE INDEX events_by_transaction ON events (xid, sequence) WHERE xid IS NOT NULL;
