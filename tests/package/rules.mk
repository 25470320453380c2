.PHONY: test-deb
test-deb: deb ## lintian over the package; install, upgrade, remove and purge it in a fresh Debian (root)
	tests/package/run $(B)/deb
