"""The bridge to the JVM: Py4J, Janino, Java sources, Catalyst trees, types and errors."""
