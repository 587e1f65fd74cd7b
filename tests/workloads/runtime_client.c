/* A library that calls the libcudart it was linked with, which says who it is. Built once for each of
 * several; runtime_versions.c loads them all. */
int cudaRuntimeGetVersion(int *version);

int client_version(void);

int client_version(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}
