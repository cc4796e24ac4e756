// Package remote makes a plugin process meet unit.Instance over its Fold stream.
//
// It owns one stream and what is in flight on it: batch numbers, the window, deadlines, the putting together of answers. It never waits
// for the plugin with a lock held, never queues more than the registry submits, and believes nothing that comes back before
// foldwire has checked it. Anything that no honest plugin sends ends the instance with the reason, and so does a
// batch that is not answered in time: that is how a hang ends. An instance ends once, and everything in flight is
// answered exactly once.
//
// Instance.mu guards its fields as they say; it is a leaf, nothing is called while it is held. Two goroutines belong to an instance, one
// that sends and one that receives; Wait waits for them.
package remote
